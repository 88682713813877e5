package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func init() { //nolint:gochecknoinits // the scheme builder of controller-runtime is filled this way
	schemeBuilder.Register(&SystemBucket{}, &SystemBucketList{})
}

// SystemBucket is a bucket of the platform's own S3 store. Deleting it deletes the bucket and every object in it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=sb
// +kubebuilder:metadata:labels={"heritage=deckhouse","module=system-s3","backup.deckhouse.io/cluster-config=true"}
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=`.status.bucketName`,description="Name of the bucket in S3."
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.spec.size`,description="Quota by space."
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.used`,description="Space taken by the objects."
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.objects`,description="Number of objects."
// +kubebuilder:printcolumn:name="Max objects",type=integer,JSONPath=`.spec.maxObjects`,priority=1,description="Quota by number of objects."
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1,description="Why it is ready or not."
// +kubebuilder:printcolumn:name="Quota",type=string,JSONPath=`.status.conditions[?(@.type=="QuotaAvailable")].reason`,priority=1,description="Whether the quotas leave room."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63",message="metadata.name must be a DNS label: at most 63 lower-case letters, digits and '-', starting and ending with a letter or digit"
type SystemBucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the owner of the bucket asks for.
	Spec SystemBucketSpec `json:"spec"`
	// What the module sees.
	//
	// +optional
	Status SystemBucketStatus `json:"status,omitempty"`
}

// SystemBucketSpec is what the owner of the bucket asks for.
type SystemBucketSpec struct {
	// Quota by space: the sum of the sizes of all objects cannot exceed it.
	// The volumes of the store grow with the sum of the sizes of all SystemBuckets.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",message="size must be a quantity such as 10Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="size must be at least 1Mi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).isLessThan(quantity('1Pi'))",message="size must be less than 1Pi"
	Size resource.Quantity `json:"size"`

	// Quota by number of objects. Not limited when absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxObjects *int64 `json:"maxObjects,omitempty"`
}

// SystemBucketStatus is what the module observed.
type SystemBucketStatus struct {
	// Name of the bucket in S3.
	//
	// +optional
	BucketName string `json:"bucketName,omitempty"`

	// Identifier of the bucket in Garage.
	//
	// +optional
	BucketID string `json:"bucketID,omitempty"`

	// Identifier of the store that has the bucket. A store that was deleted and made again has another one.
	//
	// +optional
	StoreID string `json:"storeID,omitempty"`

	// Space taken by the objects.
	//
	// +optional
	Used *resource.Quantity `json:"used,omitempty"`

	// Number of objects.
	//
	// +optional
	Objects *int64 `json:"objects,omitempty"`

	// Quotas that the store enforces.
	//
	// +optional
	Quota *SystemBucketQuota `json:"quota,omitempty"`

	// Generation of the spec that this status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: Ready, QuotaAvailable and, only after the loss of a store, DataLost.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SystemBucketQuota is what the store enforces at present.
type SystemBucketQuota struct {
	// Limit of the space taken by the objects.
	//
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// Limit of the number of objects. Absent without a limit.
	//
	// +optional
	MaxObjects *int64 `json:"maxObjects,omitempty"`
}

// SystemBucketList is a list of SystemBuckets.
//
// +kubebuilder:object:root=true
type SystemBucketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SystemBucket `json:"items"`
}

// Condition types of a SystemBucket.
const (
	ConditionReady          = "Ready"
	ConditionQuotaAvailable = "QuotaAvailable"
	// ConditionDataLost is True once the store with the bucket's objects was deleted and the bucket was made again, empty.
	// It is absent otherwise, and stays.
	ConditionDataLost = "DataLost"
)

// Reasons of the Ready condition.
const (
	ReasonReady             = "Ready"
	ReasonWaitingForStorage = "WaitingForStorage"
	ReasonNoStorageClass    = "NoStorageClass"
	ReasonInvalidSpec       = "InvalidSpec"
	ReasonBackendError      = "BackendError"
	ReasonDeleting          = "Deleting"
)

// Reasons of the DataLost condition.
const (
	ReasonStoreMadeAnew = "StoreMadeAnew"
)

// Reasons of the QuotaAvailable condition.
const (
	ReasonWithinQuota  = "WithinQuota"
	ReasonNearQuota    = "NearQuota"
	ReasonQuotaReached = "QuotaReached"
)
