"""kube-scheduler's scores over columns: helpers of the plugin ``nodeorder``. Each gives a node 0 to 100, whole."""
