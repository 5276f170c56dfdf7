package eventstore

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/internal/testing/must"
)

// mirror seals by writing backwards; it fails with what is set.
type mirror struct {
	fails    error
	accounts []string // whose keys were asked for
}

func (m *mirror) Seal(_ context.Context, accountID, stream string, plaintext []byte) (string, error) {
	return accountID + "|" + stream + "|" + backwards(string(plaintext)), m.fails
}

func (m *mirror) Unseal(_ context.Context, accountID, stream, sealed string) ([]byte, error) {
	text, ours := strings.CutPrefix(sealed, accountID+"|"+stream+"|")
	if !ours {
		return nil, domain.ErrUnsealable
	}
	return []byte(backwards(text)), m.fails
}

func (m *mirror) SealText(_ context.Context, subject, accountID string, plaintext []byte) (string, error) {
	m.accounts = append(m.accounts, accountID)
	return "s1." + base64.RawURLEncoding.EncodeToString([]byte(subject+"|"+backwards(string(plaintext)))), m.fails
}

func (m *mirror) OpenText(_ context.Context, subject string, sealed []byte) ([]byte, error) {
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(string(sealed), "s1."))
	if err != nil {
		return nil, domain.ErrUnsealable
	}
	plain, ours := strings.CutPrefix(string(text), subject+"|")
	if !ours {
		return nil, domain.ErrUnsealable
	}
	return []byte(backwards(plain)), m.fails
}

func (m *mirror) Expect(context.Context, []string) error { return m.fails }

func backwards(s string) string {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b)
}

func TestCustomersWordsAreSealedInTheLog(t *testing.T) {
	t.Parallel()
	seal := &mirror{}
	c, stream := &Client{sealer: seal}, domain.AccountStream("acc")
	e := domain.NewEvent{ID: uuid.New(), Event: &account.Created{Name: "Acme <1>", Sandbox: true}}
	propose := func(c *Client) []byte {
		t.Helper()
		out, err := c.proposals(t.Context(), stream, []domain.NewEvent{e})
		must.NoError(t, err)
		return out[0].Data
	}
	read := func(c *Client, stream string, data []byte) (string, error) {
		t.Helper()
		r, err := c.whole(t.Context(), &esdb.RecordedEvent{StreamID: stream, EventType: e.Event.EventType(), Data: data, UserMetadata: []byte(`{}`)})
		if err != nil {
			return "", err
		}
		if string(r.Data) != string(data) {
			t.Errorf("what is stored is told as %s, not %s", r.Data, data)
		}
		recorded, err := r.Decode()
		if err != nil {
			return "", err
		}
		created := recorded.Event.(*account.Created)
		if !created.Sandbox {
			t.Error("the rest is lost")
		}
		return created.Name, nil
	}

	stored := propose(c)
	if strings.Contains(string(stored), "Acme") || !json.Valid(stored) {
		t.Errorf("stored is %s", stored)
	}
	if e.Event.(*account.Created).Name != "Acme <1>" {
		t.Error("the caller's event was changed")
	}
	if got := string(Redact("account.created", stored)); got != `{"sandbox":true,"sealed":"[sealed]"}` {
		t.Errorf("it is shown as %s", got)
	}
	before := []byte(`{"name":"Acme <1>","sandbox":true}`)
	if got := propose(&Client{}); string(got) != string(before) {
		t.Errorf("without a sealer stored is %s", got)
	}
	for name, c := range map[string]struct {
		client *Client
		data   []byte
		fails  error
		want   string
	}{
		"with the key":                {c, stored, nil, "Acme <1>"},
		"written before":              {c, before, nil, "Acme <1>"},
		"when the key is gone":        {c, stored, domain.ErrShredded, domain.ErasedText},
		"without a sealer":            {&Client{}, stored, nil, domain.HiddenText},
		"before, the key is gone now": {c, before, domain.ErrShredded, "Acme <1>"},
	} {
		seal.fails = c.fails
		if got, err := read(c.client, stream, c.data); err != nil || got != c.want {
			t.Errorf("%s: the name is %q, %v; want %q", name, got, err, c.want)
		}
	}
	seal.fails = nil
	var damaged *DecodeError
	if _, err := read(c, domain.AccountStream("other"), stored); !errors.As(err, &damaged) {
		t.Errorf("moved to another stream: %v", err)
	}
	// What passes is no fault of the event: it is read again.
	seal.fails = errors.New("the database is away")
	if _, err := read(c, stream, stored); !errors.Is(err, seal.fails) || errors.As(err, &damaged) {
		t.Errorf("while the key cannot be read: %v", err)
	}
	if _, err := c.proposals(t.Context(), stream, []domain.NewEvent{e}); !domain.IsKind(err, domain.KindUnavailable) {
		t.Errorf("while it cannot be sealed: %v", err)
	}
}
