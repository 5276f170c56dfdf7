package wire

// ReadyProblem is one reason for not being ready, or a note for the operator of a service
// that is ready. It is public; Cause is for the log only.
type ReadyProblem struct {
	Note   bool   `json:"-"`
	Part   string `json:"part"`
	Reason string `json:"reason"`
	Cause  error  `json:"-"`
}
