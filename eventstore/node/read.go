package node

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"humanqa/eventstore/node/store"
)

const (
	// The first pages of a read of $all are shorter, so that its client has work
	// while the next one is read.
	firstRows = 128
	moreRows  = 4
)

// reading is one Read call, with the receiver and the form of its answers.
type reading struct {
	node     *Node
	out      streams.Streams_ReadServer
	ctx      context.Context
	links    bool
	idString bool
	// compatible clients are told the stream's bounds after the events.
	compatible bool
	live       *subscription // of a subscription
}

func (s *streamsServer) Read(req *streams.ReadReq, out streams.Streams_ReadServer) error {
	return answer(out.Context(), s.readEvents(req, out))
}

func (s *streamsServer) readEvents(req *streams.ReadReq, out streams.Streams_ReadServer) error {
	o := req.GetOptions()
	if o.GetUuidOption() == nil {
		return invalid("the uuid option is required")
	}
	_, idString := o.GetUuidOption().GetContent().(*streams.ReadReq_Options_UUIDOption_String_)
	r := &reading{
		node: s.node, out: out, ctx: out.Context(), links: o.GetResolveLinks(), idString: idString,
		compatible: o.GetControlOption().GetCompatibility() >= 1,
	}
	f, err := newFilter(o.GetFilter())
	if err != nil {
		return err
	}
	backward := o.GetReadDirection() == streams.ReadReq_Options_Backwards

	switch count := o.GetCountOption().(type) {
	case *streams.ReadReq_Options_Count:
		switch of := o.GetStreamOption().(type) {
		case *streams.ReadReq_Options_Stream:
			if f != nil {
				return invalid("a stream read takes no filter")
			}
			return r.readStream(of.Stream, backward, count.Count)
		case *streams.ReadReq_Options_All:
			return r.readAll(of.All, f, backward, count.Count)
		}
	case *streams.ReadReq_Options_Subscription:
		if backward {
			return invalid("a subscription reads forward")
		}
		switch of := o.GetStreamOption().(type) {
		case *streams.ReadReq_Options_Stream:
			if f != nil {
				return invalid("a stream subscription takes no filter")
			}
			return r.subscribeToStream(of.Stream)
		case *streams.ReadReq_Options_All:
			return r.subscribeToAll(of.All, f)
		}
	}
	return invalid("invalid combination of read options")
}

// readAll reads $all. Forward the start is inclusive, backward exclusive: a
// position names the place before its event. The head is taken once, so a read
// ends even while writers are faster than it.
func (r *reading) readAll(o *streams.ReadReq_Options_AllOptions, f *filter, backward bool, count uint64) error {
	head := r.node.store.Head()
	from, to := int64(0), head
	switch at := o.GetAllOption().(type) {
	case *streams.ReadReq_Options_AllOptions_Start:
		if backward {
			return nil
		}
	case *streams.ReadReq_Options_AllOptions_End:
		if !backward {
			return nil
		}
	case *streams.ReadReq_Options_AllOptions_Position:
		position, err := allPosition(at.Position)
		switch {
		case err != nil:
			return err
		case !backward:
			from = position
		case position > head && position != lastPosition:
			return noPosition(at.Position)
		default:
			to = min(to, position-1)
		}
	default:
		return invalid("a read of $all needs a start")
	}
	next := prefetch{reading: r}
	for rows := firstRows; count > 0 && from <= to; {
		limit := rows
		if f == nil {
			limit = int(min(count, uint64(rows)))
		}
		rows = min(rows*moreRows, store.PageRows)
		var p store.Page
		var err error
		if backward {
			p, err = r.node.store.ReadAll(r.ctx, true, from, to, limit)
		} else {
			p, err = next.nextPage(from, to, limit)
		}
		if err != nil {
			return err
		}
		if left := count - min(count, uint64(len(p.Events))); f == nil && !backward && !p.Complete && left > 0 {
			next.startPage(p.Last()+1, to, int(min(left, uint64(rows))))
		}
		for _, e := range p.Events {
			if backward {
				to = e.Position - 1
			} else {
				from = e.Position + 1
			}
			sent, err := r.sendIfPassing(f, e)
			if err != nil {
				return err
			}
			if !sent {
				continue
			}
			if count--; count == 0 {
				return nil
			}
		}
		if p.Complete {
			return nil
		}
	}
	return nil
}

// prefetch reads the next page of $all while the one before it is being sent.
type prefetch struct {
	*reading

	from, to int64
	limit    int
	read     chan func() (store.Page, error) // nil: none is under way
}

func (a *prefetch) startPage(from, to int64, limit int) {
	read := make(chan func() (store.Page, error), 1)
	a.from, a.to, a.limit, a.read = from, to, limit, read
	a.node.background.Go(func() {
		p, err := a.node.store.ReadAll(a.ctx, false, from, to, limit)
		read <- func() (store.Page, error) { return p, err }
	})
}

// nextPage gives the page whose read was begun if it is the wanted one, else it reads the
// wanted page.
func (a *prefetch) nextPage(from, to int64, limit int) (store.Page, error) {
	read := a.read
	a.read = nil
	if read != nil && a.from == from && a.to == to && a.limit == limit {
		return (<-read)()
	}
	return a.node.store.ReadAll(a.ctx, false, from, to, limit)
}

// lastPosition means the end of $all.
const lastPosition = math.MaxInt64

// allPosition reads a place in $all. One beyond the end may come to be. Where a read goes
// backward from there, or commit and prepare differ, it is of another log.
func allPosition(p *streams.ReadReq_Options_Position) (int64, error) {
	if p.GetCommitPosition() != p.GetPreparePosition() {
		return 0, noPosition(p)
	}
	return lastOf(p.GetCommitPosition()), nil
}

func noPosition(p *streams.ReadReq_Options_Position) error {
	return invalid(fmt.Sprintf("invalid position: this log has none at %d/%d", p.GetCommitPosition(), p.GetPreparePosition()))
}

func (r *reading) readStream(o *streams.ReadReq_Options_StreamOptions, backward bool, count uint64) error {
	name, err := streamName(o.GetStreamIdentifier())
	if err != nil {
		return err
	}
	info, err := r.node.store.Info(r.ctx, name)
	switch {
	case err != nil:
		return err
	case info.Deleted:
		return streamDeleted(name)
	case info.Absent():
		return r.out.Send(&streams.ReadResp{Content: &streams.ReadResp_StreamNotFound_{
			StreamNotFound: &streams.ReadResp_StreamNotFound{StreamIdentifier: o.GetStreamIdentifier()},
		}})
	}
	minRevision, minCreated := info.Readable(time.Now())
	asked := int64(0)
	switch at := o.GetRevisionOption().(type) {
	case *streams.ReadReq_Options_StreamOptions_Start:
	case *streams.ReadReq_Options_StreamOptions_End:
		asked = math.MaxInt64
	case *streams.ReadReq_Options_StreamOptions_Revision:
		asked = lastOf(at.Revision)
	default:
		return invalid("a stream read needs a start")
	}
	from, to := max(minRevision, asked), info.Last
	bounds := bounds{reading: r, asked: asked, first: minRevision, last: info.Last}
	if backward {
		from, to = minRevision, min(to, asked)
	} else if err := bounds.sendFirstIfBelow(count); err != nil {
		return err
	}
	sent := uint64(0)
	for sent < count && from <= to {
		p, err := r.node.store.ReadStream(r.ctx, name, backward, from, to, minCreated, int(min(count-sent, store.PageRows)))
		if err != nil {
			return err
		}
		for _, e := range p.Events {
			if backward {
				to = e.Revision - 1
			} else {
				from = e.Revision + 1
			}
			if err := r.sendEvent(e); err != nil {
				return err
			}
			sent++
		}
		if p.Complete {
			break
		}
	}
	if sent == 0 && !backward {
		if err := bounds.sendFirstAfterEnd(); err != nil {
			return err
		}
	}
	return bounds.sendLast()
}

// originalPage is how many revisions the original looks at in one step of a
// read. Its answers about a stream's beginning depend on it.
const originalPage = 32

// bounds sends the first and last revision of a stream to clients that asked for
// them. Others would not understand them. Before the first event, the original sends
// the beginning whenever one of its pages is empty and the next page does not begin
// at the requested place.
type bounds struct {
	*reading
	asked       int64 // where the read begins
	first, last int64 // of the stream
}

// sendFirstIfBelow sends the stream's beginning if the first page ends before it.
func (b *bounds) sendFirstIfBelow(count uint64) error {
	page := int64(min(count, originalPage))
	if !b.compatible || b.asked == math.MaxInt64 || b.asked+page-1 >= b.first {
		return nil
	}
	b.asked = b.first
	return b.sendFirst(b.first)
}

// sendFirstAfterEnd sends the revision of the next event, for a read that found none.
func (b *bounds) sendFirstAfterEnd() error {
	if !b.compatible || b.asked == b.last+1 {
		return nil
	}
	return b.sendFirst(b.last + 1)
}

func (b *bounds) sendFirst(revision int64) error {
	return b.out.Send(&streams.ReadResp{Content: &streams.ReadResp_FirstStreamPosition{FirstStreamPosition: uint64(revision)}})
}

func (b *bounds) sendLast() error {
	if !b.compatible {
		return nil
	}
	return b.out.Send(&streams.ReadResp{Content: &streams.ReadResp_LastStreamPosition{LastStreamPosition: uint64(b.last)}})
}

// sendIfPassing sends an event that the filter lets pass.
func (r *reading) sendIfPassing(f *filter, e *store.Record) (sent bool, err error) {
	if passes, err := f.passes(r.ctx, e); err != nil || !passes {
		return false, err
	}
	return true, r.sendEvent(e)
}

// sendEvent sends one event, in place of a link the event it points to.
func (r *reading) sendEvent(e *store.Record) error {
	event, link := e, (*store.Record)(nil)
	if r.links && e.Type == store.TypeLink {
		if stream, revision, ok := parseLink(e.Data); ok {
			target, err := r.follow(stream, revision)
			if err != nil {
				return err
			}
			event, link = target, e
		}
	}
	message := encodeEvent(event, link, e.Position, r.idString)
	for len(message) > maxMessage { // an older version took the larger one
		larger := &event
		if link != nil && (event == nil || event.Size() < link.Size()) {
			larger = &link
		}
		var err error
		if *larger, err = r.node.store.Unreadable(r.ctx, *larger); err != nil {
			return err
		}
		message = encodeEvent(event, link, e.Position, r.idString)
	}
	return r.out.SendMsg(message)
}

// follow gives the event to which a link leads; nil if there is none, or it can't be read any more.
func (r *reading) follow(stream string, revision int64) (*store.Record, error) {
	if stream == "" || !storable(stream) || revision < store.LastRevision {
		return nil, nil
	}
	return r.node.store.Event(r.ctx, stream, revision)
}

// lastOf turns an unsigned number of the protocol into ours; its maximum means
// the end.
func lastOf(v uint64) int64 {
	if v > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(v)
}
