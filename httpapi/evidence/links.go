package evidence

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/httpapi/wire"
)

const (
	// Prefix starts the path of every piece. Events hold only this path with the piece's
	// id. It stays true when the service moves to another host, and opens nothing without
	// a signature.
	Prefix = "/v1/evidence/"
	// linkValid is how long a link works from the answer that shows it.
	linkValid = 15 * time.Minute
	// lasting is the expiry of a link that does not expire.
	lasting = ""
)

// signature makes a link to the account's evidence valid until expires: a time in
// seconds, or lasting. Its key is the account's: shredding that key ends all links of the
// account.
func (s *Service) signature(ctx context.Context, accountID, id, expires string) (string, error) {
	return s.Vault.Fingerprint(ctx, accountID, "evidence link", []byte(id+"\n"+expires))
}

// Link gives the link that an answer shows: a fresh signed one for a reference to
// evidence, any other link as it is stored.
func (s *Service) Link(ctx context.Context, accountID, stored string) (string, error) {
	return s.linkUntil(ctx, accountID, stored, strconv.FormatInt(s.Now().Add(linkValid).Unix(), 10))
}

// LastingLink is Link for a file that is kept, such as a report in a repository
// (decisions, "Links in exports").
func (s *Service) LastingLink(ctx context.Context, accountID, stored string) (string, error) {
	return s.linkUntil(ctx, accountID, stored, lasting)
}

func (s *Service) linkUntil(ctx context.Context, accountID, stored, expires string) (string, error) {
	id, ours := strings.CutPrefix(stored, Prefix)
	if !ours {
		return stored, nil
	}
	signature, err := s.signature(ctx, accountID, id, expires)
	switch {
	case errors.Is(err, domain.ErrShredded):
		return "", nil // it was erased with its account
	case err != nil:
		return "", err
	}
	query := url.Values{"signature": {signature}}
	if expires != lasting {
		query.Set("expires", expires)
	}
	return s.BaseURL + Prefix + id + "?" + query.Encode(), nil
}

// signed says whether the link's query is a valid signature for the evidence. A wrong one
// is refused as if the evidence did not exist, an expired one with the hint to read the
// report again.
func (s *Service) signed(r *wire.Request, e Piece) error {
	query := r.URL.Query()
	raw := query.Get("expires")
	expires, err := strconv.ParseInt(raw, 10, 64)
	if raw != lasting && (err != nil || strconv.FormatInt(expires, 10) != raw) {
		return errNoEvidence
	}
	want, err := s.signature(r.Context(), e.AccountID, e.ID, raw)
	switch {
	case errors.Is(err, domain.ErrShredded):
		return errNoEvidence
	case err != nil:
		return err
	case subtle.ConstantTimeCompare([]byte(want), []byte(query.Get("signature"))) != 1:
		return errNoEvidence
	case e.GoneAt != nil: // however old the link is
		return e.gone()
	case raw != lasting && s.Now().Unix() >= expires:
		return domain.Forbidden("the link has expired").WithHint("read the report again: it has fresh links")
	}
	return nil
}

var errNoEvidence = domain.NotFound("evidence").WithHint("use a link as an answer shows it, with its whole query")

// Refer turns a link that a claimant sends into the reference that is stored. For
// evidence of the job that is its path, whether or not the link still works. Evidence
// of another job is refused; any other link stays as it is. owner is the account that
// the evidence belongs to.
func (s *Service) Refer(ctx context.Context, jobID string, o wire.Object, field string, link *string) (owner string, err error) {
	id, ours := s.ownID(*link)
	if !ours {
		return "", nil
	}
	e, found, err := s.pieces.get(ctx, id)
	switch {
	case err != nil:
		return "", err
	case !found || e.JobID != jobID:
		o.Wrong(field, "is no evidence of this job: upload the file first")
		return "", nil
	}
	*link = Prefix + id
	return e.AccountID, nil
}

// ownID recognises a link to evidence of ours by its beginning. A link to it in any other
// spelling counts as foreign: it is shown as it came, and never signed.
func (s *Service) ownID(link string) (id string, ours bool) {
	rest, ours := strings.CutPrefix(link, s.BaseURL+Prefix)
	if end := strings.IndexAny(rest, "?#"); end >= 0 {
		rest = rest[:end]
	}
	return rest, ours
}

// Path gives the path, signed for a while, at which a reference to
// evidence of ours can be fetched; ok is false for any other link.
func (s *Service) Path(ctx context.Context, accountID, stored string) (path string, ok bool, err error) {
	if !strings.HasPrefix(stored, Prefix) {
		return "", false, nil
	}
	link, err := s.Link(ctx, accountID, stored)
	return strings.TrimPrefix(link, s.BaseURL), true, err
}

// ID is the id of a reference to evidence of ours; empty for any other
// link.
func ID(stored string) string {
	id, _ := strings.CutPrefix(stored, Prefix)
	if id == stored {
		return ""
	}
	return id
}
