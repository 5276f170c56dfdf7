package service

import (
	"context"
	"io/fs"
	"slices"
	"time"

	"humanqa/httpapi/admit"
	"humanqa/httpapi/console"
	"humanqa/httpapi/dashboard"
	"humanqa/httpapi/dashboard/settings"
	"humanqa/httpapi/room"
	"humanqa/httpapi/signin"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/workbench"
	"humanqa/internal/clientlogin"
	"humanqa/internal/preferences"
	"humanqa/projections/changes"
	"humanqa/webhooks"
)

// openSite sets the pages up over the API, and starts the workers that keep open pages current
// and end old sign-ins.
func (b *boot) openSite() (*ui.Site, error) {
	api := b.handlers
	store, err := b.core.Credentials(b.cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	reads, changed := b.core.reads(), changes.New(b.feed, b.core.DB, b.consumers.WaitFor, b.log)
	site, err := ui.New(ui.Config{
		Credentials: store, People: reads.People, Changes: changed,
		Admit: api.Admit, Address: admit.Address, LogAddresses: b.cfg.LogAddresses(), WaitFor: b.consumers.WaitFor, Fresh: api.Fresh,
		Waiting: reads.Jobs.CountAsking,
		Log:     b.log.WithField("part", "pages"), Tracer: b.tracer, Now: time.Now, BaseURL: b.cfg.BaseURL,
		Templates: append([]fs.FS{signin.Templates, settings.Templates, workbench.Templates, room.Templates, console.Templates},
			dashboard.Templates...),
		Pages: slices.Concat(
			signin.Pages(signin.Deps{Credentials: store, People: reads.People, Join: b.core.Commands.JoinPerson, BaseURL: b.cfg.BaseURL}),
			dashboard.Pages(dashboard.Deps{
				Commands: b.core.Commands, Reads: reads, Evidence: b.evidence, Readers: api.Readers, Limits: api.Limits,
				Fresh: api.Fresh, PastReads: api.PastReads, Credentials: store,
				Preferences: preferences.New(b.core.DB, time.Now), Deliveries: webhooks.NewLog(b.core.DB), Chats: b.core.Chats,
				Now: time.Now, BaseURL: b.cfg.BaseURL, CreditsURL: b.cfg.CreditsURL,
			}),
			settings.Pages(settings.Deps{
				Commands: b.core.Commands, Reads: reads, Credentials: store, Logins: clientlogin.NewStore(b.core.DB, time.Now),
				Mail: b.mailStore(), Evidence: b.evidence, Readers: api.Readers, Now: time.Now, DemoKey: b.demoKey,
			}),
			console.Pages(b.consoleDeps(b.ctx, api, reads, store)),
			workbench.Pages(workbench.Deps{Commands: b.core.Commands, Reads: reads, Evidence: b.evidence, Voice: b.voice != nil,
				Now: time.Now}),
			room.Pages(room.Deps{Commands: b.core.Commands, Reads: reads, Evidence: b.evidence, Changes: changed, Voice: b.voice,
				Now: time.Now}),
		),
	})
	if err != nil {
		return nil, err
	}
	b.run(true, "pages", func(ctx context.Context) error { return changed.Run(ctx, b.head) })
	b.run(true, "sign-ins", repeating(sweepEvery, store.Sweep, b.log, "ended sessions and links stay until the next sweep"))
	return site, nil
}
