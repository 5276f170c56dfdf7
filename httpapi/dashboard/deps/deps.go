// Package deps has the dependencies that the packages of the dashboard share.
package deps

import (
	"time"

	"humanqa/domain/command"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/input"
	"humanqa/httpapi/readers"
	"humanqa/httpapi/wire"
	"humanqa/internal/chat"
	"humanqa/internal/clientlogin"
	"humanqa/internal/credential"
	"humanqa/internal/mail"
	"humanqa/internal/preferences"
	"humanqa/projections"
	"humanqa/webhooks"
)

// Deps are the dependencies of the pages. Logins, Mail and DemoKey are for the settings,
// which need neither Limits, Fresh, PastReads, Preferences, Deliveries, Chats nor a URL.
type Deps struct {
	Commands    *command.Service
	Reads       *projections.Reads
	Limits      *input.Limits
	Evidence    *evidence.Service
	Readers     *readers.Readers
	Fresh       *admit.Freshness
	PastReads   *wire.Quota // of pages that read a whole stream
	Credentials *credential.Store
	Preferences *preferences.Store
	Deliveries  *webhooks.Log
	Chats       *chat.Poster
	Logins      *clientlogin.Store
	Mail        *mail.Store // nil: the service sends no e-mail
	Now         func() time.Time
	// BaseURL is the start of the links that are shown to be copied.
	BaseURL string
	// CreditsURL is where credits are bought; empty: nowhere.
	CreditsURL string
	// DemoKey gives the API key that the demo of the service uses; nil or empty: there is no demo.
	DemoKey func() string
}
