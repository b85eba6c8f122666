"""kube-scheduler's scores over columns: helpers of the plugin ``nodeorder``. Each answers 0 to 100 a node, in whole numbers."""
