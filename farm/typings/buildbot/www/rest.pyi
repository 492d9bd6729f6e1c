from collections.abc import Callable
from json import JSONEncoder

from twisted.web.server import Request

class V2RootResource:
    _write_json_data: Callable[[Request, JSONEncoder, object], None]
