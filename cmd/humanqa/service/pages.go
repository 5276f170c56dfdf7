package service

import (
	"context"
	"io/fs"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore/consumer"
	"humanqa/httpapi"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/console"
	"humanqa/httpapi/dashboard"
	"humanqa/httpapi/dashboard/settings"
	"humanqa/httpapi/room"
	"humanqa/httpapi/signin"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/workbench"
	"humanqa/internal/clientlogin"
	"humanqa/internal/credential"
	"humanqa/internal/preferences"
	"humanqa/projections/changes"
	"humanqa/webhooks"
)

// readySite is the pages, and the changes that keep them current.
type readySite struct {
	*ui.Site
	changes     *changes.Changes
	credentials *credential.Store
	from        domain.Position
}

// openSite sets the pages up over the API. They follow the log from a position on.
func (s *Service) openSite(
	ctx context.Context, api *httpapi.API, feed consumer.Source, from domain.Position, log *logrus.Logger,
) (readySite, error) {
	store, err := s.core.Credentials(s.cfg.BaseURL)
	if err != nil {
		return readySite{}, err
	}
	reads := s.core.reads()
	out := readySite{changes: changes.New(feed, s.core.DB, s.consumers.WaitFor, log), credentials: store, from: from}
	out.Site, err = ui.New(ui.Config{
		Credentials: store, People: reads.People, Changes: out.changes,
		Admit: api.Admit, Address: admit.Address, LogAddresses: s.cfg.LogAddresses(), WaitFor: s.consumers.WaitFor, Fresh: api.Fresh,
		Waiting: reads.Jobs.CountAsking,
		Log:     log.WithField("part", "pages"), Tracer: s.tracer, Now: time.Now, BaseURL: s.cfg.BaseURL,
		Templates: append([]fs.FS{signin.Templates, settings.Templates, workbench.Templates, room.Templates, console.Templates},
			dashboard.Templates...),
		Pages: slices.Concat(
			signin.Pages(signin.Deps{Credentials: store, People: reads.People, Join: s.core.Commands.JoinPerson, BaseURL: s.cfg.BaseURL}),
			dashboard.Pages(dashboard.Deps{
				Commands: s.core.Commands, Reads: reads, Evidence: s.evidence, Readers: api.Readers, Limits: api.Limits,
				Fresh: api.Fresh, PastReads: api.PastReads, Credentials: store,
				Preferences: preferences.New(s.core.DB, time.Now), Deliveries: webhooks.NewLog(s.core.DB),
				Now: time.Now, BaseURL: s.cfg.BaseURL, CreditsURL: s.cfg.CreditsURL,
			}),
			settings.Pages(settings.Deps{
				Commands: s.core.Commands, Reads: reads, Credentials: store, Logins: clientlogin.NewStore(s.core.DB, time.Now),
				Mail: s.mailStore(), Evidence: s.evidence, Readers: api.Readers, Now: time.Now, DemoKey: s.demoKey,
			}),
			console.Pages(s.consoleDeps(ctx, api, reads, store)),
			workbench.Pages(workbench.Deps{Commands: s.core.Commands, Reads: reads, Evidence: s.evidence, Voice: s.voice != nil,
				Now: time.Now}),
			room.Pages(room.Deps{Commands: s.core.Commands, Reads: reads, Evidence: s.evidence, Changes: out.changes, Voice: s.voice,
				Now: time.Now}),
		),
	})
	return out, err
}

// run keeps open pages current, until ctx ends.
func (s readySite) run(ctx context.Context) error { return s.changes.Run(ctx, s.from) }
