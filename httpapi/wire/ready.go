package wire

// ReadyProblem is one reason for not being ready, or a note: what an operator should know of a
// service that is. Anybody may read it; Cause is for the log only.
type ReadyProblem struct {
	Note   bool   `json:"-"`
	Part   string `json:"part"`
	Reason string `json:"reason"`
	Cause  error  `json:"-"`
}
