package command

import "humanqa/domain/credits"

// Growth has the length of the longest stream of each category, in events, of those that
// this process ran commands on. It also has the size of the ledgers' open books.
type Growth struct {
	Streams map[string]uint64
	// Book has the maximum of each number over all ledgers. OpenedAt is that of the
	// oldest open book, among ledgers that were closed before.
	Book credits.Book
}

// Growth gives the sizes of the streams and the open books.
func (s *Service) Growth() Growth {
	return Growth{Book: s.ledger.LongestBooks(), Streams: map[string]uint64{
		"account": s.Accounts.Longest(), "checker": s.Checkers.Longest(), "credits": s.Ledgers.Longest(),
		"project": s.Projects.Longest(), "job": s.Jobs.Longest(), "host": s.Hosts.Longest(),
		"session": s.Sessions.Longest(), "loop": s.Loops.Longest(), "person": s.People.Longest(),
	}}
}
