package command

import (
	"cmp"
	"context"
	"sync"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
)

// Recent is what a process knows of the newest events without asking for them:
// eventstore.Feed.
type Recent interface {
	// Head is the newest position seen.
	Head() domain.Position
	// Unchanged says that the stream has no event behind one position up to another,
	// which was written; false also means that nobody knows.
	Unchanged(ctx context.Context, stream string, after, upTo domain.Position) bool
}

// Follow has the service use what the process sees of the log anyway. Call it before any
// command.
func (s *Service) Follow(r Recent) { s.recent = r }

// inheritance is a project as its jobs see it: whose it is, which never changes, and its
// defaults, as they were at a position.
type inheritance struct {
	projectID  string
	accountID  string
	slaMinutes int // 0: none
	at         domain.Position
}

// inheritances are those that were seen last, by project.
type inheritances struct {
	mu   sync.Mutex
	each map[string]inheritance
}

func (i *inheritances) get(projectID string) (inheritance, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p, known := i.each[projectID]
	return p, known
}

// keep begins anew when they are many: the log is asked again then.
func (i *inheritances) keep(p inheritance) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.each == nil || len(i.each) >= projectsCached {
		i.each = map[string]inheritance{}
	}
	i.each[p.projectID] = p
}

// inherit checks that the project, if there is one, is the account's. The defaults are
// those of some moment: inheritSLA makes sure of them.
func (s *Service) inherit(ctx context.Context, accountID, projectID string) (*inheritance, error) {
	if projectID == "" {
		return nil, nil
	}
	if p, known := s.inherited.get(projectID); known && p.accountID == accountID {
		return &p, nil
	}
	p, err := s.defaults(ctx, accountID, projectID)
	return &p, err
}

// defaults asks the log.
func (s *Service) defaults(ctx context.Context, accountID, projectID string) (inheritance, error) {
	p := inheritance{projectID: projectID, accountID: accountID}
	if s.recent != nil {
		p.at = s.recent.Head() // at least: what comes while the log is read may be in it
	}
	theirs, err := read(ctx, s.projects, domain.ProjectStream(projectID), func(st project.State) bool {
		p.slaMinutes = 0
		if st.DefaultSLAMinutes != nil {
			p.slaMinutes = *st.DefaultSLAMinutes
		}
		return st.Exists && st.AccountID == accountID
	})
	switch {
	case err != nil:
		return p, err
	case !theirs:
		return p, domain.NotFound("project")
	}
	s.inherited.keep(p)
	return p, nil
}

// inheritSLA fills in a charged job's SLA, where it does not say one, with the project's as
// of the charge: the log is only asked where what came lately cannot tell that nobody
// changed the project in front of that.
func (s *Service) inheritSLA(ctx context.Context, p *inheritance, charged domain.Position, created *job.Created) error {
	if p == nil || created.SLAMinutes != 0 {
		return nil
	}
	now := *p
	if s.recent != nil && s.recent.Unchanged(ctx, domain.ProjectStream(p.projectID), p.at, charged) {
		now.at = p.at.Max(charged)
		s.inherited.keep(now)
	} else {
		var err error
		if now, err = s.defaults(ctx, p.accountID, p.projectID); err != nil {
			return err
		}
	}
	created.SLAMinutes = cmp.Or(now.slaMinutes, defaultSLAMinutes)
	return nil
}
