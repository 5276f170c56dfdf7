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
		"account": s.Accounts.Longest(), "checker": s.Checkers.Longest(), "credits": s.Ledgers.Longest(),
		"project": s.Projects.Longest(), "job": s.Jobs.Longest(), "host": s.Hosts.Longest(),
		"session": s.Sessions.Longest(), "loop": s.Loops.Longest(), "person": s.People.Longest(),
	}}
}
