"""Cards that pods share, as Volcano's ``deviceshare`` has them: what nodes have, what pods got, who may have more."""
