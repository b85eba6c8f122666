"""kube-scheduler's filters over columns: helpers of the plugin ``predicates``, and what ``nodeorder`` shares with it."""
