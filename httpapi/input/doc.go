// Package input reads what a caller wants: one reader for each command, over an object
// that came as JSON or as a posted form (wire.Object, wire.Form), and all lengths.
//
// A reader notes what is wrong in the object's Problems and never fails, so that one
// answer names everything. Which URLs may be tested, and where webhooks may go, is for
// the Limits, which know the operator's Settings.
package input
