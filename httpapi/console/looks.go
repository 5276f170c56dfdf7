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

// lookFor is how long a look stays open (decisions, "Operators").
const lookFor = time.Hour

// lookView is what a page shows of what belongs to a client.
type lookView struct {
	Private bool   // it belongs to a client
	Open    bool   // and a look was written down
	Into    string // the stream
	Whose   string // the account; empty: nobody's
}

// ours are the streams in which nothing stands that a client or a checker wrote;
// of parts everything is sealed.
var ours = []string{
	domain.AccountStreams, domain.CreditsStreams, domain.CheckerStreams, domain.PersonStreams, domain.PoolStreams, domain.OperatorStreams,
	"log-", "part-",
}

// lookInto says whether the stream's content may be shown to who asks.
func (d console) lookInto(r *ui.Request, stream, accountID string) (lookView, error) {
	v := lookView{Into: stream, Whose: accountID, Open: true}
	v.Private = !slices.ContainsFunc(ours, func(category string) bool { return strings.HasPrefix(stream, category) })
	var err error
	if v.Private {
		v.Open, err = d.Reads.Acts.Looked(r.Context(), r.Person.ID, stream, d.Now().Add(-lookFor))
	}
	return v, err
}

// look writes down that the operator looks into a stream, and leads back.
func (d console) look(r *ui.Request) (ui.Answer, error) {
	stream := r.PathValue("stream")
	first, found, err := d.firstOf(r.Context(), stream)
	switch {
	case err != nil:
		return ui.Answer{}, err
	case !found:
		return ui.Answer{}, domain.NotFound("stream")
	}
	err = d.act(r, command.OperatorAct{Act: oversight.Look, Subject: stream, AccountID: first.accountID},
		func(context.Context, command.Cause) (domain.Position, error) { return domain.Position{}, nil })
	return answered(r, err, ui.LocalPath(r.PostFormValue("next"), streamHref(stream)), d.streamPage)
}
