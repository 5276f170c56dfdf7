package node

import (
	"math"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
)

// liveBatch is how many events a live subscription takes from the tail at once.
const liveBatch = 256

func (r *reading) confirm() error {
	return r.out.Send(&streams.ReadResp{Content: &streams.ReadResp_Confirmation{
		Confirmation: &streams.ReadResp_SubscriptionConfirmation{SubscriptionId: uuid.NewString()},
	}})
}

// caughtUp says that the subscription is live from the place on that at spells.
func (r *reading) caughtUp(at resumePoint) error {
	message := &streams.ReadResp_CaughtUp{}
	message.ProtoReflect().SetUnknown(at.append(appendTimestamp(nil, caughtUpTimestamp, time.Now())))
	return r.out.Send(&streams.ReadResp{Content: &streams.ReadResp_CaughtUp_{CaughtUp: message}})
}

// feed walks $all from behind position on, for ever: pages while the tail does
// not reach back far enough, then the tail. each gets every event in order;
// live is called whenever the walk arrives at the head after having been
// behind. The original tells clients when they catch up but not when they fall
// behind, and so does the node.
func (r *reading) feed(position int64, each func(*record) error, live func(position int64) error) error {
	var batch [liveBatch]*record
	next := ahead{reading: r}
	isLive := false
	for {
		n, behind, changed := r.node.tail.after(position, batch[:])
		events := batch[:n]
		switch {
		case behind:
			isLive = false
			p, err := next.page(position+1, math.MaxInt64, pageRows)
			if err != nil {
				return err
			}
			if !p.complete {
				next.begin(p.last()+1, math.MaxInt64, pageRows)
			}
			events = p.events
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
			position = e.position
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
		position = r.node.tail.lastPosition()
	case *streams.ReadReq_Options_AllOptions_Position:
		head := r.node.tail.lastPosition()
		var err error
		if position, err = allPosition(at.Position, head); err != nil {
			return err
		}
		position = min(position, head)
	default:
		return invalid("a subscription to $all needs a start")
	}
	defer r.node.metrics.subscribed()()
	if err := r.confirm(); err != nil {
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
	each := func(e *record) error {
		if f.passes(e) {
			if err := r.send(e); err != nil {
				return err
			}
		}
		if f == nil {
			return nil
		}
		if considered++; considered >= f.interval {
			return reached(e.position)
		}
		return nil
	}
	live := func(position int64) error {
		if f != nil {
			if err := reached(position); err != nil {
				return err
			}
		}
		return r.caughtUp(afterPosition(position))
	}
	return r.feed(position, each, live)
}

// subscribeToStream first reads the stream itself, by revision, up to a head
// taken before; then it follows $all from that head and picks the stream's
// events. What it has already sent it recognises by the revision.
func (r *reading) subscribeToStream(o *streams.ReadReq_Options_StreamOptions) error {
	name, err := streamName(o.GetStreamIdentifier())
	if err != nil {
		return err
	}
	defer r.node.metrics.subscribed()()
	head := r.node.tail.lastPosition()
	info, err := r.node.pages.info(r.ctx, name)
	if err != nil {
		return err
	}
	sent := int64(noStream)
	switch at := o.GetRevisionOption().(type) {
	case *streams.ReadReq_Options_StreamOptions_Start:
	case *streams.ReadReq_Options_StreamOptions_End:
		sent = info.last
	case *streams.ReadReq_Options_StreamOptions_Revision:
		sent = lastOf(at.Revision)
		if sent == math.MaxInt64 {
			sent = info.last
		}
	default:
		return invalid("a stream subscription needs a start")
	}
	if err := r.confirm(); err != nil {
		return err
	}
	if info.deleted {
		return streamDeleted(name)
	}
	if !info.absent() {
		if sent, err = r.catchUpStream(name, info, sent); err != nil {
			return err
		}
	}
	each := func(e *record) error {
		if e.stream != name || e.revision <= sent {
			return nil
		}
		if err := r.send(e); err != nil {
			return err
		}
		sent = e.revision
		if e.kind == typeStreamDeleted {
			return streamDeleted(name)
		}
		return nil
	}
	return r.feed(head, each, func(int64) error { return r.caughtUp(afterRevision(sent)) })
}

// catchUpStream sends the events behind a revision and returns the last one.
func (r *reading) catchUpStream(name string, info streamInfo, sent int64) (int64, error) {
	minRevision, minCreated := info.meta.limits(info.last, time.Now())
	from := minRevision
	if sent >= 0 {
		from = max(from, sent+1)
	}
	for from <= info.last {
		p, err := r.node.pages.stream(r.ctx, name, false, from, info.last, minCreated, pageRows)
		if err != nil {
			return sent, err
		}
		for _, e := range p.events {
			if err := r.send(e); err != nil {
				return sent, err
			}
			sent = e.revision
			from = sent + 1
		}
		if p.complete {
			break
		}
		if r.node.isClosing() {
			return sent, errClosing
		}
	}
	return sent, nil
}
