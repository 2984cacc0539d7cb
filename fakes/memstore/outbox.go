package memstore

import (
	"bytes"
	"context"
	"errors"

	"github.com/pgherd/pgherd/ports"
)

type outbox struct{ session }

func (o outbox) Add(ctx context.Context, e ports.OutboxEvent) error {
	s, err := o.writing(ctx)
	if err != nil {
		return err
	}
	same := func(other ports.OutboxEvent) bool {
		return other.ID == e.ID || other.OperationID == e.OperationID && other.Name == e.Name
	}
	if s.events.any(same) {
		return o.refuse(errors.New("the operation has made this event already"))
	}
	e.Payload = bytes.Clone(e.Payload)
	s.events.put(e.ID, e)
	return nil
}
