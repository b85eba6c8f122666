"""Controllers as functions: objects of the API in, wanted writes out. Who watches and who writes is the cluster's port.

Objects are decoded JSON, not model values: a controller hands a pod template on whole, with fields that nobody here
reads. They carry ``apiVersion`` and ``kind``, which the items of a list leave out.
Every function looks at what is there (not at what changed), so it may be called at any time, after any failure, and a
second call on what the first one led to wants nothing.
"""
