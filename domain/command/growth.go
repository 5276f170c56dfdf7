package command

import "humanqa/domain/credits"

// Growth is how long the streams are that this process has run commands on, in
// events by their category, and how large the ledgers' open books.
type Growth struct {
	Streams map[string]uint64
	// Book is the most of each, over all ledgers; OpenedAt is the oldest book's,
	// of those that were closed before.
	Book credits.Book
}

// Growth says what has grown.
func (s *Service) Growth() Growth {
	return Growth{Book: s.ledger.LongestBooks(), Streams: map[string]uint64{
		"account": s.accounts.Longest(), "checker": s.checkers.Longest(), "credits": s.ledgers.Longest(),
		"project": s.projects.Longest(), "job": s.jobs.Longest(), "host": s.hosts.Longest(),
		"session": s.sessions.Longest(), "loop": s.loops.Longest(), "person": s.people.Longest(),
	}}
}
