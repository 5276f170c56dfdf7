package node

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
)

// reading is one Read call: where its answers go and how they look.
type reading struct {
	node     *Node
	out      streams.Streams_ReadServer
	ctx      context.Context
	links    bool
	idString bool
	// compatible clients are told the stream's bounds after the events.
	compatible bool
}

func (s *streamsServer) Read(req *streams.ReadReq, out streams.Streams_ReadServer) error {
	return answer(out.Context(), s.read(req, out))
}

func (s *streamsServer) read(req *streams.ReadReq, out streams.Streams_ReadServer) error {
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
			return r.stream(of.Stream, backward, count.Count)
		case *streams.ReadReq_Options_All:
			return r.all(of.All, f, backward, count.Count)
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

// all reads $all. Forward the start is inclusive, backward exclusive: a
// position names the place before its event. The head is taken once, so a read
// ends even while writers are faster than it.
func (r *reading) all(o *streams.ReadReq_Options_AllOptions, f *filter, backward bool, count uint64) error {
	head := r.node.tail.lastPosition()
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
		position, err := allPosition(at.Position, head)
		if err != nil {
			return err
		}
		if backward {
			to = min(to, position-1)
		} else {
			from = position
		}
	default:
		return invalid("a read of $all needs a start")
	}
	next := ahead{reading: r}
	for rows := firstRows; count > 0 && from <= to; {
		limit := rows
		if f == nil {
			limit = int(min(count, uint64(rows)))
		}
		rows = min(rows*moreRows, pageRows)
		var p page
		var err error
		if backward {
			p, err = r.node.pages.all(r.ctx, true, from, to, limit)
		} else {
			p, err = next.page(from, to, limit)
		}
		if err != nil {
			return err
		}
		if left := count - min(count, uint64(len(p.events))); f == nil && !backward && !p.complete && left > 0 {
			next.begin(p.last()+1, to, int(min(left, uint64(rows))))
		}
		for _, e := range p.events {
			if backward {
				to = e.position - 1
			} else {
				from = e.position + 1
			}
			if !f.passes(e) {
				continue
			}
			if err := r.send(e); err != nil {
				return err
			}
			if count--; count == 0 {
				return nil
			}
		}
		if p.complete {
			return nil
		}
	}
	return nil
}

// ahead reads the next page of $all while the one before it is being sent.
type ahead struct {
	*reading

	from, to int64
	limit    int
	read     chan func() (page, error) // nil: none is under way
}

func (a *ahead) begin(from, to int64, limit int) {
	read := make(chan func() (page, error), 1)
	a.from, a.to, a.limit, a.read = from, to, limit, read
	a.node.background.Go(func() {
		p, err := a.node.pages.all(a.ctx, false, from, to, limit)
		read <- func() (page, error) { return p, err }
	})
}

// page gives what was begun, if that is what is asked for.
func (a *ahead) page(from, to int64, limit int) (page, error) {
	read := a.read
	a.read = nil
	if read != nil && a.from == from && a.to == to && a.limit == limit {
		return (<-read)()
	}
	return a.node.pages.all(a.ctx, false, from, to, limit)
}

// allPosition reads a place in $all. One that this log never gave out is an
// error, as in the original: it belongs to another log, or to a longer one. The
// maximum means the end.
func allPosition(p *streams.ReadReq_Options_Position, head int64) (int64, error) {
	commit, prepare := p.GetCommitPosition(), p.GetPreparePosition()
	if commit == math.MaxUint64 && prepare == math.MaxUint64 {
		return math.MaxInt64, nil
	}
	if commit != prepare || commit > uint64(head) {
		return 0, invalid(fmt.Sprintf("invalid position: this log has none at %d/%d", commit, prepare))
	}
	return int64(commit), nil
}

func (r *reading) stream(o *streams.ReadReq_Options_StreamOptions, backward bool, count uint64) error {
	name, err := streamName(o.GetStreamIdentifier())
	if err != nil {
		return err
	}
	info, err := r.node.pages.info(r.ctx, name)
	switch {
	case err != nil:
		return err
	case info.deleted:
		return streamDeleted(name)
	case info.absent():
		return r.out.Send(&streams.ReadResp{Content: &streams.ReadResp_StreamNotFound_{
			StreamNotFound: &streams.ReadResp_StreamNotFound{StreamIdentifier: o.GetStreamIdentifier()},
		}})
	}
	minRevision, minCreated := info.meta.limits(info.last, time.Now())
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
	from, to := max(minRevision, asked), info.last
	bounds := bounds{reading: r, asked: asked, first: minRevision, last: info.last}
	if backward {
		from, to = minRevision, min(to, asked)
	} else if err := bounds.before(count); err != nil {
		return err
	}
	sent := uint64(0)
	for sent < count && from <= to {
		p, err := r.node.pages.stream(r.ctx, name, backward, from, to, minCreated, int(min(count-sent, pageRows)))
		if err != nil {
			return err
		}
		for _, e := range p.events {
			if backward {
				to = e.revision - 1
			} else {
				from = e.revision + 1
			}
			if err := r.send(e); err != nil {
				return err
			}
			sent++
		}
		if p.complete {
			break
		}
	}
	if sent == 0 && !backward {
		if err := bounds.nothing(); err != nil {
			return err
		}
	}
	return bounds.after()
}

// originalPage is how many revisions the original looks at in one step of a
// read. What it tells of a stream's beginning depends on it.
const originalPage = 32

// bounds tells clients that asked for it where a stream begins and ends. Others
// would not understand it. While nothing was sent, the original names the
// beginning whenever one of its pages is empty and the next begins elsewhere
// than was asked.
type bounds struct {
	*reading
	asked       int64 // where the read begins
	first, last int64 // of the stream
}

// before tells of a first page that ends before the stream begins.
func (b *bounds) before(count uint64) error {
	page := int64(min(count, originalPage))
	if !b.compatible || b.asked == math.MaxInt64 || b.asked+page-1 >= b.first {
		return nil
	}
	b.asked = b.first
	return b.begin(b.first)
}

// nothing tells where the next event will stand, of a read that found none.
func (b *bounds) nothing() error {
	if !b.compatible || b.asked == b.last+1 {
		return nil
	}
	return b.begin(b.last + 1)
}

func (b *bounds) begin(revision int64) error {
	return b.out.Send(&streams.ReadResp{Content: &streams.ReadResp_FirstStreamPosition{FirstStreamPosition: uint64(revision)}})
}

func (b *bounds) after() error {
	if !b.compatible {
		return nil
	}
	return b.out.Send(&streams.ReadResp{Content: &streams.ReadResp_LastStreamPosition{LastStreamPosition: uint64(b.last)}})
}

// send sends one event, in place of a link the event it points to.
func (r *reading) send(e *record) error {
	event, link := e, (*record)(nil)
	if r.links && e.kind == typeLink {
		target, err := r.resolve(e)
		if err != nil {
			return err
		}
		event, link = target, e
	}
	return r.out.SendMsg(encodeEvent(event, link, e.position, r.idString))
}

// resolve follows a link; nil if what it points to can't be read any more.
func (r *reading) resolve(link *record) (*record, error) {
	stream, revision, ok := linkTarget(link.data)
	if !ok {
		return nil, nil
	}
	return r.node.pages.event(r.ctx, stream, revision)
}
