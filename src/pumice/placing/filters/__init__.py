"""kube-scheduler's filters over columns: helpers of ``predicates``, and what ``nodeorder`` shares."""
