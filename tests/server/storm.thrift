// The part of Storm's interface by which its clients call functions, and by which others answer
// them.

exception AuthorizationException {
  1: required string msg;
}

struct DRPCRequest {
  1: required string func_args;
  2: required string request_id;
}

enum DRPCExceptionType {
  INTERNAL_ERROR = 0,
  SERVER_SHUTDOWN = 1,
  SERVER_TIMEOUT = 2,
  FAILED_REQUEST = 3
}

exception DRPCExecutionException {
  1: required string msg;
  2: optional DRPCExceptionType type;
}

service DistributedRPC {
  string execute(1: string functionName, 2: string funcArgs)
    throws (1: DRPCExecutionException e, 2: AuthorizationException aze);
}

service DistributedRPCInvocations {
  void result(1: string id, 2: string result) throws (1: AuthorizationException aze);
  DRPCRequest fetchRequest(1: string functionName) throws (1: AuthorizationException aze);
  void failRequest(1: string id) throws (1: AuthorizationException aze);
  void failRequestV2(1: string id, 2: DRPCExecutionException e)
    throws (1: AuthorizationException aze);
}
