package projects

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/httpapi/ui"
	"humanqa/internal/signature"
	"humanqa/projections/projects"
	"humanqa/webhooks"
)

type deliveryView struct {
	webhooks.DeliveryDetail // the newest of its attempts comes first

	Project  projects.Project
	Titles   map[string]string // as in the list
	Body     string            // the exact bytes
	Readable string            // the same, indented
	Sent     []signature.Header
	Curl     string
	Latest   webhooks.Attempt // that was signed: its signatures can be verified
	Stamp    string           // webhook-timestamp of it
}

func (d Deps) getDelivery(ctx context.Context, accountID, id string) (webhooks.DeliveryDetail, error) {
	known, err := uuid.Parse(id)
	if err != nil {
		return webhooks.DeliveryDetail{}, domain.NotFound("delivery")
	}
	return d.Deliveries.Delivery(ctx, accountID, "", known)
}

func (d Deps) delivery(r *ui.Request, w webhooks.DeliveryDetail) (_ ui.Answer, err error) {
	slices.Reverse(w.Attempts)
	v := deliveryView{DeliveryDetail: w, Body: string(w.Body), Sent: w.Headers(webhooks.Attempt{})}
	if v.Project, err = d.Reads.Projects.Get(r.Context(), w.AccountID, w.ProjectID); err != nil {
		return ui.Answer{}, err
	}
	if v.Titles, err = d.titlesOf(r.Context(), w.AccountID, w.Delivery); err != nil {
		return ui.Answer{}, err
	}
	if len(w.Attempts) > 0 {
		v.Sent = w.Headers(w.Attempts[0])
	}
	if at := slices.IndexFunc(w.Attempts, func(a webhooks.Attempt) bool { return a.Signature != "" }); at >= 0 {
		v.Latest = w.Attempts[at]
	}
	for _, h := range w.Headers(v.Latest) {
		if h.Name == "webhook-timestamp" {
			v.Stamp = h.Value
		}
	}
	var readable bytes.Buffer
	if json.Indent(&readable, w.Body, "", "  ") == nil { // the service made the body as JSON
		v.Readable = readable.String()
	}
	v.Curl = curlOf(v.Project.WebhookURL, v.Sent, v.Body)
	return ui.Show("delivery", w.Event, v, domain.ProjectStream(w.ProjectID)), nil
}

// curlOf is the delivery as a command of a shell, byte for byte. It uses --data-raw, which
// gives no first character a meaning.
func curlOf(url string, headers []signature.Header, body string) string {
	var b strings.Builder
	b.WriteString("curl -X POST " + ui.ShellWord(url))
	for _, h := range headers {
		b.WriteString(" \\\n  -H " + ui.ShellWord(h.Name+": "+h.Value))
	}
	b.WriteString(" \\\n  --data-raw " + ui.ShellWord(body))
	return b.String()
}

func (d Deps) redeliver(r *ui.Request, w webhooks.DeliveryDetail) (ui.Answer, error) {
	d.Fresh.Webhooks(r.Context())
	err := d.Deliveries.Redeliver(r.Context(), w.AccountID, w.ProjectID, w.ID)
	return ui.Go("/dashboard/deliveries/" + w.ID.String()), err
}
