package pgpool

import "time"

// Sessions are processes that each keep a connection with a name of its own (Named). A process
// that has died is noticed by it: a kernel closes the connections of the dead. Where a pooler
// hides names, or a frozen process keeps its connection, the process is not noticed. One
// goroutine looks.
type Sessions struct {
	started time.Time      // the database's start, after which all connections are new
	missed  map[string]int // looks since a session was seen last
}

// Dead takes the sessions that a look saw, and gives those that were missing in two looks one
// after the other. A connection that broke is opened anew in between.
func (s *Sessions) Dead(started time.Time, present []string) (dead []string) {
	if !started.Equal(s.started) {
		s.started, s.missed = started, map[string]int{}
	}
	for session := range s.missed {
		s.missed[session]++
	}
	for _, session := range present {
		s.missed[session] = 0
	}
	for session, looks := range s.missed {
		if looks >= 2 {
			dead = append(dead, session)
			delete(s.missed, session)
		}
	}
	return dead
}
