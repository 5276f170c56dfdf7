package credential

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/internal/pgpool"
)

const (
	// DeviceFor is how long a browser is known after the last sign-in there.
	DeviceFor = 180 * 24 * time.Hour
	// devicesEach bounds how many browsers are known of one person; the one that was
	// not used for longest gives way.
	devicesEach = 20
)

const seenDeviceSQL = `
UPDATE signin.devices
SET seen_at = $3
WHERE hash = $1
  AND person_id = $2`

const insertDeviceSQL = `
WITH older AS (
    DELETE FROM signin.devices
    WHERE hash IN (
        SELECT hash
        FROM signin.devices
        WHERE person_id = $2
        ORDER BY seen_at DESC, hash
        OFFSET $4)
)
INSERT INTO signin.devices (hash, person_id, seen_at)
VALUES ($1, $2, $3)`

// Remember notes that the person has just signed in with the browser that holds the
// device's token. An empty token, or another person's, is replaced by a new one. The
// browser keeps the token.
func (s *Store) Remember(ctx context.Context, personID, device string) (token string, err error) {
	now := s.time()
	seen, err := pgpool.ExecCount(ctx, s.db, "note a browser's use", seenDeviceSQL, domain.HashToken(device), personID, now)
	if err != nil || seen > 0 {
		return device, err
	}
	token = domain.NewToken("")
	return token, pgpool.Exec(ctx, s.db, "remember a browser", insertDeviceSQL, domain.HashToken(token), personID, now, devicesEach-1)
}

const knownDeviceSQL = `
SELECT EXISTS (
    SELECT
    FROM signin.devices d
    JOIN signin.people p ON p.person_id = d.person_id
    WHERE d.hash = $1
      AND p.login = $2
      AND d.seen_at > $3)`

// knows says that the owner of the login has signed in with that browser before.
func (s *Store) knows(ctx context.Context, device, login string) (bool, error) {
	if device == "" {
		return false, nil
	}
	return pgpool.One[bool](ctx, s.db, "a browser", knownDeviceSQL, domain.HashToken(device), login, s.time().Add(-DeviceFor))
}
