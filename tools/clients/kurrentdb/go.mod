// KurrentDB-Client-Go against the embedded node (make contract). It is a module of its own, and a
// program of its own: with EventStore-Client-Go in one program it registers the same messages.
module humanqa/tools/clients/kurrentdb

go 1.26.0

require (
	github.com/google/uuid v1.6.0
	github.com/kurrent-io/KurrentDB-Client-Go v1.4.2
)

require (
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261019180522-ce908d29299b // indirect
	google.golang.org/grpc v1.85.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
