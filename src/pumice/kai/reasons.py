"""Why a gang waits, in KAI's words: reasons of its scheduling conditions."""

OVER_LIMIT = "OverLimit"
NON_PREEMPTIBLE_OVER_QUOTA = "NonPreemptibleOverQuota"
POD_SCHEDULING_ERRORS = "PodSchedulingErrors"
QUEUE_DOES_NOT_EXIST = "QueueDoesNotExist"
