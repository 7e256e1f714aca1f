# SPDX-License-Identifier: Apache-2.0
"""sitecustomize: starts the wrapping in a program of `python3 -m edgeprof run`, then is what the name stands
for without it. What the program starts finds neither this folder nor our variables."""
import os
import sys

_site = os.path.dirname(os.path.abspath(__file__))
_options = os.environ.pop("EDGEPROF_RUN", None)
_paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
if _paths[0] == _site:
    if _paths[1:]:
        os.environ["PYTHONPATH"] = os.pathsep.join(_paths[1:])
    else:
        del os.environ["PYTHONPATH"]
if _options is not None:
    try:
        import _edgeprof_hook

        _edgeprof_hook.start(*_options.split("/", 1))
    except Exception as _error:
        sys.stderr.write("edgeprof: nothing is wrapped: %r\n" % _error)
sys.path[:] = [_path for _path in sys.path if os.path.abspath(_path) != _site]
sys.path_importer_cache.pop(_site, None)
del sys.modules["sitecustomize"]
import sitecustomize  # noqa: E402, F401  (the system's or the user's; site handles its absence)
