package console

import (
	"context"
	"slices"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
	"humanqa/httpapi/ui"
)

// lookFor is the time for which a look stays open (decisions, "Operators").
const lookFor = time.Hour

// lookView says whether a page may show the content of a stream.
type lookView struct {
	Private bool   // it belongs to a client
	Open    bool   // the content may be shown: it is not private, or a look was recorded
	Into    string // the stream
	Whose   string // the account; empty: it belongs to none
}

// ours are the streams without texts of a client or a checker. The streams of parts are
// among them because all their data is sealed.
var ours = []string{
	domain.AccountStreams, domain.CreditsStreams, domain.CheckerStreams, domain.PersonStreams, domain.PoolStreams, domain.OperatorStreams,
	"log-", "part-",
}

// lookInto says whether the stream's content may be shown to the person who asks.
func (d Deps) lookInto(r *ui.Request, stream, accountID string) (lookView, error) {
	v := lookView{Into: stream, Whose: accountID, Open: true}
	v.Private = !slices.ContainsFunc(ours, func(category string) bool { return strings.HasPrefix(stream, category) })
	var err error
	if v.Private {
		v.Open, err = d.Reads.Acts.Looked(r.Context(), r.Person.ID, stream, d.Now().Add(-lookFor))
	}
	return v, err
}

// look records that the operator looks into a stream, and leads back.
func (d Deps) look(r *ui.Request) (ui.Answer, error) {
	stream := r.PathValue("stream")
	first, found, err := d.firstOf(r.Context(), stream)
	switch {
	case err != nil:
		return ui.Answer{}, err
	case !found:
		return ui.Answer{}, domain.NotFound("stream")
	}
	err = d.act(r, r.Cause(), command.OperatorAct{Act: oversight.Look, Subject: stream, AccountID: first.accountID},
		func(context.Context, command.Cause) (domain.Position, error) { return domain.Position{}, nil })
	return ui.Go(ui.LocalPath(r.PostFormValue("next"), streamHref(stream))), err
}
