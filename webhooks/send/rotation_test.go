package send_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/project"
	"humanqa/internal/signature"
	"humanqa/internal/testing/hooktest"
	"humanqa/webhooks/send"
)

// verifier is a receiver that verifies one header with the one secret it was told.
type verifier struct {
	mu       sync.Mutex
	secret   string
	standard bool // webhook-signature; else X-Service-Signature
	down     int  // how many requests it answers 500
}

func (v *verifier) learns(secret string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.secret = secret
}

func (v *verifier) breaks(requests int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.down = requests
}

func (v *verifier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if v.down > 0 {
		v.down--
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	verified := r.Header.Get("X-Service-Signature") == signature.Of([]byte(v.secret), body)
	if v.standard {
		verified = signature.Verify([]byte(v.secret), r.Header, body, time.Now()) == nil
	}
	if !verified {
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// rotating is a project whose secret is about to be rotated.
type rotating struct {
	*bundle
	verifier
	url  string
	jobs int
}

const oldSecret, newSecret = "secret of p1", "the new one"

func rotatingTo(t *testing.T, standard bool) *rotating {
	r := &rotating{bundle: setup(t), verifier: verifier{secret: oldSecret, standard: standard}}
	// The receiver reads the body itself: the endpoint's notes are not needed.
	e := r.Endpoint(hooktest.Status(http.StatusOK))
	e.Config.Handler = &r.verifier
	r.url = e.URL
	r.Project("p1", e.URL, nil)
	return r
}

func (r *rotating) rotate(secret string) {
	until := time.Now().Add(time.Hour)
	r.Change("p1", &project.SecretSet{SecretID: secret, Sealed: hooktest.Seal("p1", secret), Rotated: true, At: hooktest.At, PreviousUntil: &until})
	r.Subscribed()
}

// deliver submits a job and says how many attempts its event took to arrive.
func (r *rotating) deliver() (attempts int) {
	r.Helper()
	r.Submit("p1", fmt.Sprint("j", r.jobs))
	r.jobs++
	r.Settled("p1", map[string]int{"delivered": r.jobs})
	all := r.Deliveries("p1")
	return all[len(all)-1].Attempts
}

// finished says whether the log was told that the receiver ended the rotation.
func (r *rotating) finished() bool {
	return slices.ContainsFunc(r.Events.Stream(domain.ProjectStream("p1")), func(e domain.Recorded) bool {
		f, ok := e.Event.(*project.RotationFinished)
		return ok && f.By == project.ByReceiver
	})
}

// Decisions, "Rotation": a receiver that verifies X-Service-Signature with one secret
// loses nothing, whenever it is told the new one.
func TestNoOrderOfRotationAndDeployLosesADelivery(t *testing.T) {
	t.Run("the receiver is told at once", func(t *testing.T) {
		r := rotatingTo(t, false)
		r.Subscribe()
		r.Dispatch()
		r.deliver()
		r.rotate(newSecret)
		r.learns(newSecret)
		if got := r.deliver(); got != 2 {
			t.Errorf("the first delivery took %d attempts, want 2: the previous secret, then the new one", got)
		}
		r.Eventually("the log says that the receiver ended the rotation", r.finished)
		r.Subscribed()
		if got := r.deliver(); got != 1 {
			t.Errorf("a delivery after that took %d attempts, want 1", got)
		}
		if attempts := r.Attempts("p1", r.Deliveries("p1")[1].ID.String()); attempts[0].Error != "answered 401; X-Service-Signature was made with the previous secret" {
			t.Errorf("the refused attempt says %q", attempts[0].Error)
		}
	})
	t.Run("it is told later, or never", func(t *testing.T) {
		r := rotatingTo(t, false)
		r.Subscribe()
		r.Dispatch()
		r.rotate(newSecret)
		for range 3 {
			if got := r.deliver(); got != 1 {
				t.Errorf("a delivery took %d attempts, want 1: the receiver knows the previous secret", got)
			}
		}
		if r.finished() {
			t.Error("the rotation ended, although the receiver knows only the previous secret")
		}
		r.learns(newSecret)
		r.deliver()
		r.Eventually("the log says that the receiver ended the rotation", r.finished)
	})
	for _, knows := range []string{oldSecret, newSecret} {
		t.Run("the rotation comes before the last attempt, to a receiver that knows "+knows, func(t *testing.T) {
			r := rotatingTo(t, false)
			r.Config.Retries = []time.Duration{time.Millisecond, time.Millisecond, time.Hour}
			r.Subscribe()
			stop := r.Dispatch()
			r.breaks(3)
			r.Submit("p1", "j0")
			r.Eventually("three attempts have failed", func() bool {
				all := r.Deliveries("p1")
				return len(all) == 1 && all[0].Attempts == 3
			})
			stop()
			r.rotate(newSecret)
			r.learns(knows)
			r.Exec(`UPDATE webhooks.deliveries SET due_at = now()`)
			r.Exec(`UPDATE webhooks.endpoints SET due_at = now()`)
			r.Dispatch()
			r.Settled("p1", map[string]int{"delivered": 1})
		})
	}
	t.Run("the receiver was down, and is told meanwhile", func(t *testing.T) {
		r := rotatingTo(t, false)
		r.Subscribe()
		r.Dispatch()
		r.rotate(newSecret)
		r.breaks(1)
		if got := r.deliver(); got != 3 {
			t.Errorf("the delivery took %d attempts, want 3: down, the new secret refused, the previous one", got)
		}
	})
}

// A success under the new secret ends a rotation only where the same delivery was
// refused under the previous one: a receiver that verifies webhook-signature accepts either.
func TestARotationIsNotEndedByWhoDoesNotKnowTheNewSecret(t *testing.T) {
	r := rotatingTo(t, true)
	r.Subscribe()
	r.Dispatch()
	r.rotate(newSecret)
	r.breaks(1)
	if got := r.deliver(); got != 2 { // the second attempt has X-Service-Signature of the new secret
		t.Errorf("the delivery took %d attempts, want 2", got)
	}
	for range 2 {
		if got := r.deliver(); got != 1 {
			t.Errorf("a delivery took %d attempts, want 1", got)
		}
	}
	if r.finished() {
		t.Error("the rotation ended, although the receiver knows only the previous secret")
	}
}

// A crash between the success and the event loses nothing: the row remembers.
func TestAConfirmedSecretIsReportedUntilTheLogKnows(t *testing.T) {
	r := rotatingTo(t, false)
	r.Subscribe()
	refused := make(chan struct{}, 10)
	stop := r.RunLoop(send.NewDispatcher(r.DB, hooktest.Vault{}, send.Report{Confirmed: func(context.Context, string, string) error {
		refused <- struct{}{}
		return domain.Unavailable(context.DeadlineExceeded)
	}}, r.Config).Run)
	r.rotate(newSecret)
	r.learns(newSecret)
	r.deliver()
	<-refused
	stop()
	if r.finished() {
		t.Fatal("the log was told")
	}
	var sealedAs string
	told := make(chan struct{})
	r.RunLoop(send.NewDispatcher(r.DB, hooktest.Vault{}, send.Report{Confirmed: func(_ context.Context, _, secret string) error {
		sealedAs = secret
		close(told)
		return nil
	}}, r.Config).Run)
	<-told
	if !strings.HasSuffix(sealedAs, newSecret) {
		t.Errorf("the secret that was confirmed is %q", sealedAs)
	}
}
