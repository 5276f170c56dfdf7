package node

import (
	"math"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"

	"humanqa/eventstore/node/store"
)

// liveBatch is how many events a live subscription takes from the tail at once.
const liveBatch = 256

func (r *reading) sendConfirmation() error {
	return r.out.Send(&streams.ReadResp{Content: &streams.ReadResp_Confirmation{
		Confirmation: &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: uuid.NewString()},
	}})
}

// sendCaughtUp says that the subscription is live from the resume point on.
func (r *reading) sendCaughtUp(at resumePoint) error {
	message := &streams.ReadResp_CaughtUp{}
	message.ProtoReflect().SetUnknown(at.appendFields(appendTimestamp(nil, caughtUpTimestamp, time.Now())))
	return r.out.Send(&streams.ReadResp{Content: &streams.ReadResp_CaughtUp_{CaughtUp: message}})
}

// followTail walks $all from behind position on, for ever. each gets every
// event in order. While the tail does not reach back far enough, catchUp gives the next
// ones, and the position behind which they begin. live is called whenever the walk arrives
// at the head after it was behind. Like the original, the node tells clients when they
// catch up but not when they fall behind.
func (r *reading) followTail(
	position int64, catchUp func(position int64) ([]*store.Record, int64, error), each func(*store.Record) error,
	live func(position int64) error,
) error {
	var batch [liveBatch]*store.Record
	r.live.at.Store(position)
	isLive := false
	for {
		n, behind, changed := r.node.store.After(position, batch[:])
		events := batch[:n]
		switch {
		case behind:
			isLive = false
			var err error
			if events, position, err = catchUp(position); err != nil {
				return err
			}
			r.live.at.Store(position)
		case n == 0:
			if !isLive {
				isLive = true
				if err := live(position); err != nil {
					return err
				}
			}
			select {
			case <-changed:
			case <-r.ctx.Done():
				return r.ctx.Err()
			case <-r.node.closing:
				return errClosing
			}
			continue
		}
		for _, e := range events {
			if err := each(e); err != nil {
				return err
			}
			position = e.Position
			r.live.at.Store(position)
		}
		if r.node.isClosing() {
			return errClosing
		}
	}
}

func (r *reading) subscribeToAll(o *streams.ReadReq_Options_AllOptions, f *filter) error {
	if f != nil && f.interval == 0 {
		return invalid("the checkpoint interval must be positive")
	}
	position := int64(0)
	switch at := o.GetAllOption().(type) {
	case *streams.ReadReq_Options_AllOptions_Start:
	case *streams.ReadReq_Options_AllOptions_End:
		position = r.node.store.Head()
	case *streams.ReadReq_Options_AllOptions_Position:
		var err error
		if position, err = allPosition(at.Position); err != nil {
			return err
		}
		if position == lastPosition {
			position = r.node.store.Head()
		}
	default:
		return invalid("a subscription to $all needs a start")
	}
	var end func()
	r.live, end = r.node.subscribe(r.ctx, "$all", f != nil, position)
	defer end()
	if err := r.sendConfirmation(); err != nil {
		return err
	}
	considered, checkpoint := uint64(0), position
	reached := func(position int64) error {
		if position <= checkpoint {
			return nil
		}
		checkpoint, considered = position, 0
		message := &streams.ReadResp_Checkpoint{CommitPosition: uint64(position), PreparePosition: uint64(position)}
		message.ProtoReflect().SetUnknown(appendTimestamp(nil, checkpointTimestamp, time.Now()))
		return r.out.Send(&streams.ReadResp{Content: &streams.ReadResp_Checkpoint_{Checkpoint: message}})
	}
	each := func(e *store.Record) error {
		if _, err := r.sendIfPassing(f, e); err != nil {
			return err
		}
		if f == nil {
			return nil
		}
		if considered++; considered >= f.interval {
			return reached(e.Position)
		}
		return nil
	}
	live := func(position int64) error {
		if f != nil {
			if err := reached(position); err != nil {
				return err
			}
		}
		return r.sendCaughtUp(resumePoint{ofAll: true, at: position})
	}
	next := prefetch{reading: r}
	catchUp := func(position int64) ([]*store.Record, int64, error) {
		p, err := next.nextPage(position+1, math.MaxInt64, store.PageRows)
		if err == nil && !p.Complete {
			next.startPage(p.Last()+1, math.MaxInt64, store.PageRows)
		}
		return p.Events, position, err
	}
	return r.followTail(position, catchUp, each, live)
}

// subscribeToStream first reads the stream itself, by revision, up to a head
// taken before. Then it follows the tail from that head and picks the stream's events. It
// recognises events that it has already sent by the revision. Behind the tail it reads the
// stream again.
func (r *reading) subscribeToStream(o *streams.ReadReq_Options_StreamOptions) error {
	name, err := streamName(o.GetStreamIdentifier())
	if err != nil {
		return err
	}
	var end func()
	r.live, end = r.node.subscribe(r.ctx, name, false, 0)
	defer end()
	info, err := r.node.store.Info(r.ctx, name)
	if err != nil {
		return err
	}
	sent := int64(store.NoStream)
	switch at := o.GetRevisionOption().(type) {
	case *streams.ReadReq_Options_StreamOptions_Start:
	case *streams.ReadReq_Options_StreamOptions_End:
		sent = info.Last
	case *streams.ReadReq_Options_StreamOptions_Revision:
		sent = lastOf(at.Revision)
		if sent == math.MaxInt64 {
			sent = info.Last
		}
	default:
		return invalid("a stream subscription needs a start")
	}
	if err := r.sendConfirmation(); err != nil {
		return err
	}
	catchUp := func(int64) ([]*store.Record, int64, error) {
		head := r.node.store.Head()
		info, err := r.node.store.Info(r.ctx, name)
		switch {
		case err != nil:
			return nil, 0, err
		case info.Deleted:
			return nil, 0, streamDeleted(name)
		case !info.Absent():
			sent, err = r.catchUpStream(name, info, sent)
		}
		return nil, head, err
	}
	_, head, err := catchUp(0)
	if err != nil {
		return err
	}
	each := func(e *store.Record) error {
		if e.Stream != name || e.Revision <= sent {
			return nil
		}
		if err := r.sendEvent(e); err != nil {
			return err
		}
		sent = e.Revision
		if e.Type == store.TypeStreamDeleted {
			return streamDeleted(name)
		}
		return nil
	}
	return r.followTail(head, catchUp, each, func(int64) error { return r.sendCaughtUp(resumePoint{at: sent}) })
}

// catchUpStream sends the events behind a revision and returns the last one.
func (r *reading) catchUpStream(name string, info store.StreamInfo, sent int64) (int64, error) {
	minRevision, minCreated := info.Readable(time.Now())
	from := minRevision
	if sent >= 0 {
		from = max(from, sent+1)
	}
	for from <= info.Last {
		p, err := r.node.store.ReadStream(r.ctx, name, false, from, info.Last, minCreated, store.PageRows)
		if err != nil {
			return sent, err
		}
		for _, e := range p.Events {
			if err := r.sendEvent(e); err != nil {
				return sent, err
			}
			sent = e.Revision
			from = sent + 1
		}
		if p.Complete {
			break
		}
		if r.node.isClosing() {
			return sent, errClosing
		}
	}
	return sent, nil
}
