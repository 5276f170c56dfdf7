package checkers

import (
	"humanqa/httpapi/admit"
	v1 "humanqa/httpapi/v1"
)

// Handlers are the handlers of checkers.
type Handlers struct {
	v1.Shared
	Writer *admit.Writer
}
