"""Controllers as functions: from objects of the API to writes. Watching and writing is the task of the cluster's port.

Objects are decoded JSON and not model values, because a controller passes on whole pod templates, with fields that it
does not read. They have ``apiVersion`` and ``kind``, which items of a list leave out. Every function examines the
present state (not what changed). So it may be called at any time and after any failure, and a second call on the result
of the first writes nothing.
"""
