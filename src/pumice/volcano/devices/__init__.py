"""Cards that pods share, as in Volcano's deviceshare plugin: what nodes have, what pods got, and what a pod would
get."""
