package ui

// State shows a state by a word, a colour and a sign; the template "state" renders it.
type State struct {
	Word string
	Kind string // pass, fail, warn, live, or empty
	Icon string // its name; empty: none
}

// NewState is a State.
func NewState(word, kind, icon string) State { return State{Word: word, Kind: kind, Icon: icon} }
