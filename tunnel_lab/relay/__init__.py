"""User-space WAN link: joins two network namespaces with a set rate, round-trip time, queue and loss."""
