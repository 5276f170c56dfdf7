package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/project"
	"humanqa/internal/service"
	"humanqa/internal/service/logging"
	"humanqa/webhooks"
)

const (
	// forwardTime is what the service itself gives an endpoint.
	forwardTime = 10 * time.Second
	// forwardRead bounds what is read of an answer that nobody looks at.
	forwardRead = 1 << 20
)

// answerer answers deliveries as the flags of listen say.
type answerer struct {
	cmd    *listenCmd
	client *http.Client
	ended  <-chan struct{} // listen is being stopped
}

func newForwarder() *http.Client {
	return &http.Client{
		Timeout:       forwardTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer gives the status to answer with; told says how passing on went, where it
// was asked for.
func (a answerer) answer(sender context.Context, r webhooks.Received) (status int, told string) {
	switch {
	case a.cmd.Hang:
		select {
		case <-sender.Done():
		case <-a.ended:
		}
		return webhooks.NoAnswer, ""
	case a.cmd.Answer != 0:
		return a.cmd.Answer, ""
	case a.cmd.ForwardTo == "":
		return http.StatusNoContent, ""
	}
	began := time.Now()
	status, err := a.forward(sender, r)
	if err != nil {
		return http.StatusBadGateway, "not passed on: " + logging.OneLine(err.Error())
	}
	return status, fmt.Sprintf("passed on in %d ms", time.Since(began).Milliseconds())
}

// forward sends the same bytes, and the headers that belong to them.
func (a answerer) forward(ctx context.Context, r webhooks.Received) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.cmd.ForwardTo, bytes.NewReader(r.Body))
	if err != nil {
		return 0, err
	}
	for name, values := range r.Header {
		if name == "Content-Type" || name == "User-Agent" || strings.HasPrefix(name, "X-Service-") || strings.HasPrefix(name, "Webhook-") {
			req.Header[name] = values
		}
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }() // read as far as anybody cares
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, forwardRead))
	return resp.StatusCode, nil
}

// projectHook is a project whose webhook comes to a listener for a while.
type projectHook struct {
	core      *service.Core
	projectID string
	cause     command.Cause
}

// openHook finds the project. One whose webhook goes to a server of somebody's
// is left alone.
func openHook(ctx context.Context, core *service.Core, projectID string) (*projectHook, error) {
	cause, st, err := projectOf(ctx, core.Log, projectID)
	if err != nil {
		return nil, err
	}
	if st.WebhookURL != "" && !onLoopback(st.WebhookURL) {
		u, _ := url.Parse(st.WebhookURL) // it was accepted once
		return nil, fmt.Errorf("the project's webhook goes to %s: take a project without one, or clear its webhookUrl first", u.Host)
	}
	return &projectHook{core: core, projectID: projectID, cause: cause}, nil
}

// projectOf is the operator acting on a project's account, and the project.
func projectOf(ctx context.Context, log domain.Log, projectID string) (command.Cause, project.State, error) {
	var st project.State
	err := log.Load(ctx, domain.ProjectStream(projectID), 0, func(r domain.Recorded) error {
		st = project.Evolve(st, r.Event)
		return nil
	})
	switch {
	case err != nil:
		return command.Cause{}, st, err
	case !st.Exists:
		return command.Cause{}, st, domain.NotFound("project " + projectID)
	}
	var owner account.State
	err = log.Load(ctx, domain.AccountStream(st.AccountID), 0, func(r domain.Recorded) error {
		owner = account.Evolve(owner, r.Event)
		return nil
	})
	cause := service.OperatorCause(st.AccountID)
	cause.Sandbox = owner.Sandbox
	return cause, st, err
}

// onLoopback says that a URL leads to this machine, as a listener's does.
func onLoopback(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// clearURL clears the project's webhook, unless somebody has pointed it elsewhere
// meanwhile; what happens from now on is sent nowhere.
func (h *projectHook) clearURL(ctx context.Context, from string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), service.VisibleLimit)
	defer cancel()
	_, st, err := projectOf(ctx, h.core.Log, h.projectID)
	if err == nil && st.WebhookURL == from {
		err = h.setURL(ctx, "")
	}
	if err != nil {
		return fmt.Errorf("the project's webhook still goes to this machine, clear its webhookUrl: %w", err)
	}
	return nil
}

// setURL sends the project's webhook there. What a listener that was killed left
// behind is enabled again.
func (h *projectHook) setURL(ctx context.Context, to string) error {
	cause := h.cause
	cause.CommandID = command.NewCommandID()
	_, at, err := h.core.Commands.UpdateProject(ctx, cause, h.projectID, command.UpdateProject{WebhookURL: &to})
	if err != nil {
		return err
	}
	h.core.WaitVisible(ctx, at)
	return nil
}

// currentSecret is read anew for each delivery: it may be rotated meanwhile.
func (h *projectHook) currentSecret(ctx context.Context, log logrus.FieldLogger) []byte {
	secret, err := h.core.Commands.WebhookSecret(ctx, h.projectID)
	if err != nil && !errors.Is(err, context.Canceled) {
		log.WithError(err).Error("the project's secret cannot be read: nothing is verified")
	}
	return []byte(secret)
}
