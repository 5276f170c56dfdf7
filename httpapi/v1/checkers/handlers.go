package checkers

import (
	"slices"

	"humanqa/httpapi/admit"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
)

// Handlers are the handlers of checkers.
type Handlers struct {
	v1.Shared
	Writer *admit.Writer
}

// Routes are the routes of checkers. The file of a topic lists its own.
func (a *Handlers) Routes() []wire.Route {
	return slices.Concat(a.claimRoutes(), a.workRoutes(), a.recordingRoutes(), a.sessionRoutes())
}
