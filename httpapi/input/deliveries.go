package input

import (
	"fmt"

	"github.com/google/uuid"

	"humanqa/httpapi/wire"
	"humanqa/webhooks"
)

// MaxChosen bounds the deliveries that one call may name.
const MaxChosen = 1000

// ChosenDeliveries reads since or deliveryIds: exactly one of them, so that an empty body
// does not replay everything.
func ChosenDeliveries(o wire.Object) (c webhooks.Chosen) {
	since := o.Moment("since")
	names := o.Strings("deliveryIds", MaxChosen, wire.MaxWord)
	switch {
	case o.Broken(): // the object itself is wrong
	case since != nil && names != nil:
		o.Wrong("since", "must be left out where deliveryIds are given")
	case since != nil:
		c.Since = *since
	case names != nil:
		c.IDs = []uuid.UUID{}
		for i, name := range *names {
			id, err := uuid.Parse(name)
			if err != nil {
				o.Wrong(fmt.Sprintf("deliveryIds[%d]", i), "must be a delivery's id")
			}
			c.IDs = append(c.IDs, id)
		}
	default:
		o.Wrong("since", "is required, or deliveryIds")
	}
	return c
}
