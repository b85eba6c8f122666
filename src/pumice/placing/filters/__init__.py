"""kube-scheduler's filters over columns, for ``predicates``, with what ``nodeorder`` shares."""
