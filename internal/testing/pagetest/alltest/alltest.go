// Package alltest is the beginning of a test of a whole service: a database with the
// tables of every read model.
package alltest

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections"
	"humanqa/projections/analytics"
	"humanqa/webhooks"
)

// Database is the database after a service's first start.
var Database = pgtest.Template{Prepare: func(ctx context.Context, db *sqlx.DB) error {
	log := logtest.New()
	models := consumer.New(db, log, logrus.New(), append(projections.All(), webhooks.NewSubscriber(db, log, ""))...)
	return errors.Join(models.Prepare(ctx), analytics.Prepare(ctx, db))
}}
