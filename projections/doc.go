// Package projections lists the read models. Each is a folder: its tables, the
// fold that writes them, and the queries that answer from them, side by side. A
// new one is such a folder and a line in All; what the API asks of it also
// stands in Reads.
//
// eventstore/consumer runs the folds. readmodel is what folds and queries
// share, modeltest what their tests share.
package projections
