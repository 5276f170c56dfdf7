// Package input reads commands: one reader for each, over an object that came as JSON or
// as a posted form (wire.Object, wire.Form), and all lengths.
//
// A reader notes each problem in the object's Problems and never fails, so that one
// answer names all of them. The Limits know the operator's Settings: they decide which
// URLs may be tested, and where webhooks may go.
package input
