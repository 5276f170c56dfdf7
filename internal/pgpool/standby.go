package pgpool

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

// A primary may become a stand-by, and keep its connections. It then refuses to write. The
// service follows the new primary: such a connection is not used again, and a new one goes to
// the host of the address that is the primary. A name that leads to the primary needs no more
// than the new connection.

// Codes of the refusals. Nothing was done.
const (
	readOnly = "25006" // of a statement
	noWrites = "0A000" // of the begin of a transaction that may write
)

// leaveStandby gives up a connection to a server that refuses with the code. database/sql then
// sends the statement again on another one, unless it is in a transaction.
func (c *conn) leaveStandby(err error, code pqerror.Code) error {
	if refused, ok := errors.AsType[*pq.Error](err); ok && refused.Code == code {
		c.ended = true
		return fmt.Errorf("%w: %w", driver.ErrBadConn, err)
	}
	return err
}

// followPrimary makes a connector of several hosts look for the primary, unless the address
// says which of them it wants.
func followPrimary(config *pq.Config) {
	if len(config.Multi) > 0 && config.TargetSessionAttrs == "" {
		config.TargetSessionAttrs = pq.TargetSessionAttrsPrimary
	}
}

// severalHosts gives the errors of a connect to several hosts as one that may pass: while no
// host is the primary, another one is about to be.
type severalHosts struct{ driver.Connector }

// Connect implements driver.Connector.
func (h severalHosts) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := h.Connector.Connect(ctx)
	if _, refused := errors.AsType[*pq.Error](err); err != nil && !refused {
		err = fmt.Errorf("%w: %w", driver.ErrBadConn, err)
	}
	return opened, err
}
