"""Why a queue does not take a job on, in KAI's words (reasons of its scheduling conditions)."""

OVER_LIMIT = "OverLimit"
NON_PREEMPTIBLE_OVER_QUOTA = "NonPreemptibleOverQuota"
