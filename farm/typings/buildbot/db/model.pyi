import sqlalchemy as sa

class Model:
    metadata: sa.MetaData
    build_properties: sa.Table
    builder_masters: sa.Table
    builders: sa.Table
    builders_tags: sa.Table
    buildrequest_claims: sa.Table
    buildrequests: sa.Table
    builds: sa.Table
    buildset_properties: sa.Table
    buildsets: sa.Table
    connected_workers: sa.Table
    logchunks: sa.Table
    logs: sa.Table
    masters: sa.Table
    object_state: sa.Table
    objects: sa.Table
    steps: sa.Table
    tags: sa.Table
    workers: sa.Table
