"""Scores of kube-scheduler over columns, for the nodeorder plugin. Each score is a whole number from 0 to 100."""
