package httpapi

import (
	"io"
	"net/http"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/wire"
	"humanqa/internal/clientlogin"
	"humanqa/internal/tracing"
)

// The device flow: the command line gets a key that an owner confirms on the dashboard.

const (
	// devicePoll is how often the client asks, in seconds.
	devicePoll = 3
	maxClient  = 100
	maxDevice  = 64
)

type begunLogin struct {
	DeviceCode      string `json:"deviceCode"`
	UserCode        string `json:"userCode"`
	VerificationURL string `json:"verificationUrl"`
	ExpiresIn       int    `json:"expiresInSeconds"`
	Interval        int    `json:"intervalSeconds"`
}

// beginLogin is POST /v1/device.
func (a *API) beginLogin(r *wire.Request) (wire.Answer, error) {
	if err := a.readStranger(r); err != nil {
		return wire.Answer{}, err
	}
	var p wire.Problems
	client := r.OptionalObject(&p).Optional("client", maxClient)
	if err := p.Err(); err != nil {
		return wire.Answer{}, err
	}
	begun, err := a.logins.Begin(r.Context(), client, admit.Address(r.RemoteAddr))
	return wire.ReplyUnless(err, http.StatusCreated, begunLogin{
		DeviceCode: begun.DeviceCode, UserCode: begun.UserCode, VerificationURL: a.BaseURL + "/dashboard/device?code=" + begun.UserCode,
		ExpiresIn: int(clientlogin.Life / time.Second), Interval: devicePoll,
	})
}

type collectedLogin struct {
	Status    string `json:"status"`
	AccountID string `json:"accountId,omitempty"`
	KeyID     string `json:"keyId,omitempty"`
	APIKey    string `json:"apiKey,omitempty"`
}

// collectLogin is POST /v1/device/token. The key is made here, so that it is stored
// nowhere before. Its command's id is the sign-in's, so a repeat makes no second key.
func (a *API) collectLogin(r *wire.Request) (wire.Answer, error) {
	if err := a.readStranger(r); err != nil {
		return wire.Answer{}, err
	}
	var p wire.Problems
	code := r.Object(&p).Required("deviceCode", maxDevice)
	if err := p.Err(); err != nil {
		return wire.Answer{}, err
	}
	approval, commandID, err := a.logins.Collect(r.Context(), code)
	switch {
	case err != nil:
		return wire.Answer{}, err
	case approval == nil:
		return wire.Reply(http.StatusAccepted, collectedLogin{Status: "pending"})
	}
	in := command.IssueKey{Name: approval.Name, Scope: approval.Scope, ProjectID: approval.ProjectID}
	if approval.KeyDays > 0 {
		in.ExpiresAt = new(a.Now().Add(time.Duration(approval.KeyDays) * 24 * time.Hour).UTC())
	}
	key, err := a.Commands.IssueKey(r.Context(), command.Cause{
		CommandID: commandID, CorrelationID: r.ID, Trace: tracing.Of(r.Context()),
		Actor: "person:" + approval.PersonID, AccountID: approval.AccountID, Sandbox: approval.Sandbox,
	}, approval.AccountID, in)
	if err != nil {
		return wire.Answer{}, err
	}
	a.writer.Visible(r.Context(), r, key.Position)
	return wire.Reply(http.StatusOK, collectedLogin{Status: "approved", AccountID: approval.AccountID, KeyID: key.KeyID, APIKey: key.Token})
}

// strangerBody bounds both bodies; neither needs as much.
const strangerBody = 4 << 10

// readStranger counts a request without a credential and reads its body, which is
// otherwise left unread.
func (a *API) readStranger(r *wire.Request) error {
	if err := a.gate.LimitStranger(r, make(http.Header), nil); err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, strangerBody+1))
	switch {
	case err != nil:
		return &domain.Error{Kind: domain.KindInvalid, Code: domain.CodeInvalidRequest, Message: "the body ended early", Cause: err}
	case len(raw) > strangerBody:
		return wire.ErrTooLarge
	}
	r.Content = raw
	return nil
}
