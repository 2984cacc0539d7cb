package webhook

import (
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/machine"
)

// DeliveryStatus is the status of one event's delivery to one endpoint.
type DeliveryStatus string

// The statuses of a delivery.
const (
	Pending    DeliveryStatus = "pending"    // waits for its next attempt
	Delivering DeliveryStatus = "delivering" // a dispatcher holds it under a lease
	Delivered  DeliveryStatus = "delivered"  // final: answered with 2xx in time
	Failed     DeliveryStatus = "failed"     // final: no attempt is left, or the endpoint was disabled
)

// DeliveryStatuses lists them in the order of the docs.
var DeliveryStatuses = []DeliveryStatus{Pending, Delivering, Delivered, Failed}

// Values lists them for the API's description.
func (DeliveryStatus) Values() []DeliveryStatus { return DeliveryStatuses }

// Final reports whether no further attempt will be made by itself.
func (s DeliveryStatus) Final() bool { return s == Delivered || s == Failed }

// DeliveryEvent is what happens to a delivery.
type DeliveryEvent string

// The events of a delivery.
const (
	Claim     DeliveryEvent = "claim"     // a dispatcher takes or retakes it, with a higher epoch
	Deliver   DeliveryEvent = "deliver"   // the attempt succeeded
	Retry     DeliveryEvent = "retry"     // the attempt failed; there will be another
	Exhaust   DeliveryEvent = "exhaust"   // the attempt failed; there will be no other
	Abandon   DeliveryEvent = "abandon"   // the endpoint was disabled
	Redeliver DeliveryEvent = "redeliver" // a user asks for it once more
)

// DeliveryEvents lists them in the order of the docs.
var DeliveryEvents = []DeliveryEvent{Claim, Deliver, Retry, Exhaust, Abandon, Redeliver}

// Effects of the table of deliveries.
const (
	RaiseEpoch       = "raise epoch"
	ScheduleAttempt  = "schedule attempt"
	RestoreAttempts  = "restore attempts"
	RefuseNewAttempt = "no further attempt"
)

var (
	toDelivery = machine.To[DeliveryStatus]
	noDelivery = machine.Refuse[DeliveryStatus](fault.InternalError)
)

// DeliveryTransitions is the machine of a delivery. Impossible transitions are INTERNAL_ERROR: the lease's epoch stops
// dispatchers before they get there. An attempt that is running when its endpoint is disabled may finish.
var DeliveryTransitions = machine.Table[DeliveryStatus, DeliveryEvent]{
	Pending: {
		Claim: toDelivery(Delivering, RaiseEpoch), Deliver: noDelivery, Retry: noDelivery, Exhaust: noDelivery,
		Abandon: toDelivery(Failed), Redeliver: toDelivery(Pending, RestoreAttempts, ScheduleAttempt),
	},
	Delivering: {
		Claim: toDelivery(Delivering, RaiseEpoch), Deliver: toDelivery(Delivered),
		Retry: toDelivery(Pending, ScheduleAttempt), Exhaust: toDelivery(Failed),
		Abandon: toDelivery(Delivering, RefuseNewAttempt), Redeliver: toDelivery(Delivering),
	},
	Delivered: {
		Claim: noDelivery, Deliver: noDelivery, Retry: noDelivery, Exhaust: noDelivery,
		Abandon: toDelivery(Delivered), Redeliver: toDelivery(Pending, RestoreAttempts, ScheduleAttempt),
	},
	Failed: {
		Claim: noDelivery, Deliver: noDelivery, Retry: noDelivery, Exhaust: noDelivery,
		Abandon: toDelivery(Failed), Redeliver: toDelivery(Pending, RestoreAttempts, ScheduleAttempt),
	},
}
